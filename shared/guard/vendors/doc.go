// Package vendors implements the checks that call a guardrail vendor. A table of wires defines
// for each check how to call its vendor and how to read the response: a template for the
// request and a short function. Calls, credentials, limits, errors and breakers are shared.
//
// If a vendor does not respond or responds incorrectly, the check has an error and passes
// unless failOnError is set. A check reports labels and scores, never parts of the text.
package vendors
