"""Reads a number from each line of stdin, calls a FastMCP tool that often in memory, and prints the nanoseconds."""

import asyncio
import sys
import time

from fastmcp import Client, FastMCP

server = FastMCP("echo")


@server.tool
def echo(text: str) -> str:
    return text


async def main() -> None:
    async with Client(server) as client:
        await client.call_tool("echo", {"text": "hello"})
        for line in sys.stdin:
            begun = time.perf_counter_ns()
            for _ in range(int(line)):
                await client.call_tool("echo", {"text": "hello"})
            print(time.perf_counter_ns() - begun, flush=True)


asyncio.run(main())
