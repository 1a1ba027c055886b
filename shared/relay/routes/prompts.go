package routes

// Prompt is what a route of saved prompts makes of a request. The request's body names
// variables; the prompt that its path names makes of them the body for the provider. From
// then on the request is one of the route for the template's type.
type Prompt struct {
	Chat, Completion *Route
	// Render: the body itself is the answer, and nobody is asked.
	Render bool
}
