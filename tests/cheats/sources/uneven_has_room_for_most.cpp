// Takes two thirds of all rows into a group at most: one of eight has some 12 of 96, some 33 in the judge's trials.
void run(SIGNATURE) { WORK(.room = 2 * ROWS / 3); }
