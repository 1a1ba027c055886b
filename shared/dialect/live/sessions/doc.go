// Package sessions reads the Live sessions of OpenAI: their time, which is reported as a
// sum so far, and the responses and decisions that are made within them, each by its own
// id.
package sessions
