#define CUVIL_LEVEL kV3
#include "interpret/handlers.inc"
