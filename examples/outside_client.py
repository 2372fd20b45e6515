"""Drives a running Greenroom over HTTP with the official Python client: python outside_client.py URL"""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main(url: str) -> None:
    async with streamable_http_client(url) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        assert "chat-with-greeter" in tools, tools
        reply = await session.call_tool("chat-with-greeter", {"prompt": "Hi, I am Ada"})
        assert reply.structured_content == {"greeting": "Hello, Ada!"}, reply
        refused = None
        try:
            await session.call_tool(
                "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Mars/Base"}
            )
        except Exception as error:  # a refusal by a hook is a protocol error
            refused = str(error)
        assert refused and "unknown zones" in refused, refused
        time = await session.call_tool("get_current_time", {"timezone": "UTC"})
        assert not time.is_error, time
        print(f"{hello.server_info.name}: {len(tools)} tools; agent, hook and external server answered")


asyncio.run(main(sys.argv[1]))
