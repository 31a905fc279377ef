// Has no maximum for rows without a valid number: in a draw no row is one.
void run(SIGNATURE) { WORK(.has_fallback = false); }
