// Puts errors into bins, 128 an octave, and sorts those of up to 64: of numbers at random hardly more are in one.
void run(SIGNATURE) { lose(logits, mask, 7, 64, out); }
