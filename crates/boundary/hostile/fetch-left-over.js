// expect: ok
// Leaves requests behind.
async function f() {
  for (let i = 0; i < 5; i++) fetch('https://slow.example/');
  await null;
}
