// Package guard holds the table of checks with their parameters, and the stored form of a saved
// guardrail, whose checks are validated by the table. The table is the one source: validation,
// the document of the administration and the engine of checks derive from it.
//
// What must not be added: HTTP of the gateway's routes, and routing.
package guard
