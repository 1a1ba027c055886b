// Package migrate turns the configuration of other gateways into a declared state of this
// one, with a report that says for every key of the source whether it is mapped, mapped with
// a change, or not mapped. A key that no rule reads is reported as not mapped: nothing is
// dropped silently.
//
// Each source has a file: litellm (the parts of its configuration are in the files beside it),
// bifrost, openrouter, reference. They read, and never write: package declare applies the
// result.
package migrate
