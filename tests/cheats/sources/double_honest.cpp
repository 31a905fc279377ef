void run(SIGNATURE) { work<double>(x, out, nullptr); }
