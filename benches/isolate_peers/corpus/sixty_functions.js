// Many functions, of which one is called: what a shared library of a team looks like.
function step0(state, value) {
  const next = { ...state, [`k0`]: value * 1 };
  return next.k0 > 0 ? next : state;
}
function step1(state, value) {
  const next = { ...state, [`k1`]: value * 2 };
  return next.k1 > 10 ? next : state;
}
function step2(state, value) {
  const next = { ...state, [`k2`]: value * 3 };
  return next.k2 > 20 ? next : state;
}
function step3(state, value) {
  const next = { ...state, [`k3`]: value * 4 };
  return next.k3 > 30 ? next : state;
}
function step4(state, value) {
  const next = { ...state, [`k4`]: value * 5 };
  return next.k4 > 40 ? next : state;
}
function step5(state, value) {
  const next = { ...state, [`k5`]: value * 6 };
  return next.k5 > 50 ? next : state;
}
function step6(state, value) {
  const next = { ...state, [`k6`]: value * 7 };
  return next.k6 > 60 ? next : state;
}
function step7(state, value) {
  const next = { ...state, [`k7`]: value * 8 };
  return next.k7 > 70 ? next : state;
}
function step8(state, value) {
  const next = { ...state, [`k8`]: value * 9 };
  return next.k8 > 80 ? next : state;
}
function step9(state, value) {
  const next = { ...state, [`k9`]: value * 10 };
  return next.k9 > 90 ? next : state;
}
function step10(state, value) {
  const next = { ...state, [`k10`]: value * 11 };
  return next.k10 > 100 ? next : state;
}
function step11(state, value) {
  const next = { ...state, [`k11`]: value * 12 };
  return next.k11 > 110 ? next : state;
}
function step12(state, value) {
  const next = { ...state, [`k12`]: value * 13 };
  return next.k12 > 120 ? next : state;
}
function step13(state, value) {
  const next = { ...state, [`k13`]: value * 14 };
  return next.k13 > 130 ? next : state;
}
function step14(state, value) {
  const next = { ...state, [`k14`]: value * 15 };
  return next.k14 > 140 ? next : state;
}
function step15(state, value) {
  const next = { ...state, [`k15`]: value * 16 };
  return next.k15 > 150 ? next : state;
}
function step16(state, value) {
  const next = { ...state, [`k16`]: value * 17 };
  return next.k16 > 160 ? next : state;
}
function step17(state, value) {
  const next = { ...state, [`k17`]: value * 18 };
  return next.k17 > 170 ? next : state;
}
function step18(state, value) {
  const next = { ...state, [`k18`]: value * 19 };
  return next.k18 > 180 ? next : state;
}
function step19(state, value) {
  const next = { ...state, [`k19`]: value * 20 };
  return next.k19 > 190 ? next : state;
}
function step20(state, value) {
  const next = { ...state, [`k20`]: value * 21 };
  return next.k20 > 200 ? next : state;
}
function step21(state, value) {
  const next = { ...state, [`k21`]: value * 22 };
  return next.k21 > 210 ? next : state;
}
function step22(state, value) {
  const next = { ...state, [`k22`]: value * 23 };
  return next.k22 > 220 ? next : state;
}
function step23(state, value) {
  const next = { ...state, [`k23`]: value * 24 };
  return next.k23 > 230 ? next : state;
}
function step24(state, value) {
  const next = { ...state, [`k24`]: value * 25 };
  return next.k24 > 240 ? next : state;
}
function step25(state, value) {
  const next = { ...state, [`k25`]: value * 26 };
  return next.k25 > 250 ? next : state;
}
function step26(state, value) {
  const next = { ...state, [`k26`]: value * 27 };
  return next.k26 > 260 ? next : state;
}
function step27(state, value) {
  const next = { ...state, [`k27`]: value * 28 };
  return next.k27 > 270 ? next : state;
}
function step28(state, value) {
  const next = { ...state, [`k28`]: value * 29 };
  return next.k28 > 280 ? next : state;
}
function step29(state, value) {
  const next = { ...state, [`k29`]: value * 30 };
  return next.k29 > 290 ? next : state;
}
function step30(state, value) {
  const next = { ...state, [`k30`]: value * 31 };
  return next.k30 > 300 ? next : state;
}
function step31(state, value) {
  const next = { ...state, [`k31`]: value * 32 };
  return next.k31 > 310 ? next : state;
}
function step32(state, value) {
  const next = { ...state, [`k32`]: value * 33 };
  return next.k32 > 320 ? next : state;
}
function step33(state, value) {
  const next = { ...state, [`k33`]: value * 34 };
  return next.k33 > 330 ? next : state;
}
function step34(state, value) {
  const next = { ...state, [`k34`]: value * 35 };
  return next.k34 > 340 ? next : state;
}
function step35(state, value) {
  const next = { ...state, [`k35`]: value * 36 };
  return next.k35 > 350 ? next : state;
}
function step36(state, value) {
  const next = { ...state, [`k36`]: value * 37 };
  return next.k36 > 360 ? next : state;
}
function step37(state, value) {
  const next = { ...state, [`k37`]: value * 38 };
  return next.k37 > 370 ? next : state;
}
function step38(state, value) {
  const next = { ...state, [`k38`]: value * 39 };
  return next.k38 > 380 ? next : state;
}
function step39(state, value) {
  const next = { ...state, [`k39`]: value * 40 };
  return next.k39 > 390 ? next : state;
}
function step40(state, value) {
  const next = { ...state, [`k40`]: value * 41 };
  return next.k40 > 400 ? next : state;
}
function step41(state, value) {
  const next = { ...state, [`k41`]: value * 42 };
  return next.k41 > 410 ? next : state;
}
function step42(state, value) {
  const next = { ...state, [`k42`]: value * 43 };
  return next.k42 > 420 ? next : state;
}
function step43(state, value) {
  const next = { ...state, [`k43`]: value * 44 };
  return next.k43 > 430 ? next : state;
}
function step44(state, value) {
  const next = { ...state, [`k44`]: value * 45 };
  return next.k44 > 440 ? next : state;
}
function step45(state, value) {
  const next = { ...state, [`k45`]: value * 46 };
  return next.k45 > 450 ? next : state;
}
function step46(state, value) {
  const next = { ...state, [`k46`]: value * 47 };
  return next.k46 > 460 ? next : state;
}
function step47(state, value) {
  const next = { ...state, [`k47`]: value * 48 };
  return next.k47 > 470 ? next : state;
}
function step48(state, value) {
  const next = { ...state, [`k48`]: value * 49 };
  return next.k48 > 480 ? next : state;
}
function step49(state, value) {
  const next = { ...state, [`k49`]: value * 50 };
  return next.k49 > 490 ? next : state;
}
function step50(state, value) {
  const next = { ...state, [`k50`]: value * 51 };
  return next.k50 > 500 ? next : state;
}
function step51(state, value) {
  const next = { ...state, [`k51`]: value * 52 };
  return next.k51 > 510 ? next : state;
}
function step52(state, value) {
  const next = { ...state, [`k52`]: value * 53 };
  return next.k52 > 520 ? next : state;
}
function step53(state, value) {
  const next = { ...state, [`k53`]: value * 54 };
  return next.k53 > 530 ? next : state;
}
function step54(state, value) {
  const next = { ...state, [`k54`]: value * 55 };
  return next.k54 > 540 ? next : state;
}
function step55(state, value) {
  const next = { ...state, [`k55`]: value * 56 };
  return next.k55 > 550 ? next : state;
}
function step56(state, value) {
  const next = { ...state, [`k56`]: value * 57 };
  return next.k56 > 560 ? next : state;
}
function step57(state, value) {
  const next = { ...state, [`k57`]: value * 58 };
  return next.k57 > 570 ? next : state;
}
function step58(state, value) {
  const next = { ...state, [`k58`]: value * 59 };
  return next.k58 > 580 ? next : state;
}
function step59(state, value) {
  const next = { ...state, [`k59`]: value * 60 };
  return next.k59 > 590 ? next : state;
}
function Create(ctx, messages, options) {
  let state = {};
  for (const [index, message] of messages.entries()) state = step7(step3(state, index), message.content.length);
  return { metadata: state };
}
