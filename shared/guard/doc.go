// Package guard contains the table of checks with their parameters, and the stored form of
// guardrails, with checks that the table validates. Validation, the API document and the engine
// derive from the table.
//
// Do not add HTTP handlers or routing here.
package guard
