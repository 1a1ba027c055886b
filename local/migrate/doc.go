// Package migrate turns the configuration of other gateways into a declared state of this
// one, with a report that says for every key of the source whether it is mapped, mapped with
// a change, or not mapped. A key that no rule reads is reported as not mapped: nothing is
// dropped silently.
//
// One file per source: litellm, bifrost, openrouter, reference. They read, and never write:
// package declare carries the result out.
package migrate
