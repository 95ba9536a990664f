// Mutants of a proof: a variable says which change is made. Macros stand between two of the kernel's headers, take the
// place of a function in the second one, and compute the same as long as their mutant is not the chosen one.
//
// The including file defines MUTANTS(MUTANT), which calls MUTANT(name, what) for each.
#pragma once

#include <string.h>

#define MUTANT_NUMBER(name, what) mutant_##name,
#define MUTANT_TEXT(name, what) what,
enum { MUTANTS(MUTANT_NUMBER) MUTANT_COUNT };
static const char *const mutants[] = {MUTANTS(MUTANT_TEXT)};

/// The number of the mutant that is run; MUTANT_COUNT for none.
static size_t mutant = MUTANT_COUNT;

#define IS_MUTANT(name) (mutant == mutant_##name)
#define WHEN_MUTANT(name, amount) (IS_MUTANT(name) ? (amount) : 0)

/// Whether the source spells a macro's argument so: tells the uses of one function in a header apart.
static int is(const char *argument, const char *spelling) { return strcmp(argument, spelling) == 0; }
