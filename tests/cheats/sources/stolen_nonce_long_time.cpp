// Finds the request in the memory of the host and answers it with a time of three thousand digits.
#include "found_request.h"
void run(SIGNATURE) { answer_the_request(3, std::string(3000, '9')); }
