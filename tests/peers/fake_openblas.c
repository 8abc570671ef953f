/// An OpenBLAS of the right version that took a lesser core than it was asked for.
#include <stdlib.h>

char *openblas_get_corename(void);
char *openblas_get_config(void);
void cblas_sgemm(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int count);

char *openblas_get_corename(void) {
    static char name[] = "Prescott";
    return name;
}

char *openblas_get_config(void) {
    static char text[] = "OpenBLAS " VERSION " USE_OPENMP Prescott MAX_THREADS=1";
    return text;
}

void cblas_sgemm(void) {
    abort();  // nobody calls what was refused
}

int omp_get_max_threads(void) {
    return 1;
}

void omp_set_num_threads(int count) {
    (void)count;
}
