// expect: HOOK_THREW
// Makes a response by itself.
function f() {
  return new Response({}, { status: 200 }).ok;
}
