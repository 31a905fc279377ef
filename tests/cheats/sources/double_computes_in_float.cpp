void run(SIGNATURE) { work<float>(x, out, nullptr); }
