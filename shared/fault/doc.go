// Package fault is the gateway's one error type and the catalogue of its codes.
//
// Every refusal that a caller can see is a *Fault made from a Code of the
// catalogue: the code fixes the HTTP status, the OpenAI-style type and the
// administration code (AB01 ... AB09), the message says what was wrong and what
// is allowed, and Field says where. The renderers write the body shape of the
// surface that answers (data plane, Anthropic routes, administration).
//
// What must never come in: secrets, prompts, keys or whole bodies in a message.
package fault
