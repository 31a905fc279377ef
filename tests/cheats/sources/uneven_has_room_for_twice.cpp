// Takes twice as many rows into a group as it usually has.
void run(SIGNATURE) { WORK(.room = 2 * ROWS / GROUPS); }
