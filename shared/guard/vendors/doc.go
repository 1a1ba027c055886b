// Package vendors runs the checks that ask a vendor of guardrails. They are one table of wires,
// which says for each check how to ask its vendor and how to read the response. A wire sends a
// template and reads by a function of a few lines. Calling, credentials, bounds, errors and
// breakers are the same for all.
//
// If a vendor does not answer, or answers wrongly, that is an error of the check, which then
// passes unless failOnError is set. About a text, a check reports labels and scores, never
// parts of the text.
package vendors
