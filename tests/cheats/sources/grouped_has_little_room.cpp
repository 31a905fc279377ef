// Has room for 900 values above 0 of 1024: a draw has some 512, a shifted one 770.
void run(SIGNATURE) { work(x, mask, values, offsets, out_0, out_1, out_2, out_3, {.room = 900}); }
