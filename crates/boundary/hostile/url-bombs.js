// expect: ok|HOOK_CPU_LIMIT
// Addresses that are hard to read.
function f() {
  const bombs = ['http://' + 'a.'.repeat(20000), 'http://' + 'xn--'.repeat(5000), 'http://a/' + '../'.repeat(20000), 'http://[' + ':'.repeat(20000),
    'http://a/?' + '%'.repeat(20000), 'http://' + '\u00ad'.repeat(20000), 'http://a:' + '9'.repeat(20000), '\u0000'.repeat(20000), 'http://a/#' + '\ud800'.repeat(20000)];
  for (const bomb of bombs) { URL.canParse(bomb); URL.parse(bomb)?.searchParams.sort(); }
  return typeof new URLSearchParams('&='.repeat(10000)).toString() === 'string';
}
