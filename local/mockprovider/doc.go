// Package mockprovider is a model provider that runs on the local machine and costs
// nothing. It implements the OpenAI and the Anthropic formats strictly: it rejects the same
// requests as the providers, with their error bodies, and it records a bill of the charges it
// would have made. It imports nothing from the gateway, so that a mistake in a translator cannot be
// repeated here.
//
// README.md lists its routes, models, directives and administration. What a route accepts and how it
// responds is data where it can be: bodies.txtar has the rules of bodies, objects.txtar describes stored
// objects and jobs, wires.txtar the operations of hosts with their own formats. Code is for
// conversations, streams and what depends on other objects.
package mockprovider
