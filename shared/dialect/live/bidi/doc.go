// Package bidi reads the Live sessions of Gemini: turns, each with the usage that is reported
// for it. The usage of a turn that calls tools may arrive in several parts, because the model
// reads the conversation again for each.
//
// Usage with the same prompt as the last turn restates that turn: it replaces the earlier
// report. Otherwise every turn is charged, because each reads the complete conversation before
// it. Usage arrives beside other content or alone, and also after its turn is over.
package bidi
