package routes

// Prompt renders the requests on a route of saved prompts. The request's body contains
// variables; the prompt that its path names renders the body for the provider. From then on the
// request is one of the route for the template's type.
type Prompt struct {
	Chat, Completion *Route
	// Render: the rendered body is the response, and no provider is called.
	Render bool
}
