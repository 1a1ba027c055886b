// Package metered reads what answers say of their usage, estimates what they do not
// say, and has it charged: plain answers and streams, those that broke off, what is
// passed through, and what a provider makes in its own time.
package metered
