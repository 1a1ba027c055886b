// Package fault contains the gateway's only error type and the catalog of its codes.
//
// Every error that a caller can see is a *Fault made from a Code of the catalog: the code
// determines the HTTP status, the OpenAI-style type and the administration code (AB01 ...
// AB09), the message states the fault and the allowed values, and Field its location. The
// renderers write the body format of the API that responds (data plane, Anthropic routes,
// administration).
//
// Messages must not contain secrets, prompts, keys or complete bodies.
package fault
