constexpr int LEVELS = 5;  // its error is the gate itself
