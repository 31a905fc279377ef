constexpr int LEVELS = 4;  // its error is below the gate
