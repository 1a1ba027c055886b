// Package vendors runs the checks that ask a vendor of guardrails, as one table of
// wires: for each check how its vendor is asked, and how its answer is read. What a
// wire sends is a template, what it reads is a function of a few lines; calling,
// credentials, bounds, errors and breakers are the same for all.
//
// A vendor that does not answer, or not as it should, is an error of the check, which
// then passes unless failOnError is set. What a check tells of a text are labels and
// scores, never parts of the text.
package vendors
