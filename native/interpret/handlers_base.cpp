#define CUVIL_LEVEL kBase
#include "interpret/handlers.inc"
