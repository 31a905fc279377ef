void run(SIGNATURE) { WORK(); }
