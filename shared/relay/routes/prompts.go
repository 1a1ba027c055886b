package routes

// Prompt is what a route of saved prompts makes of a request: its body names
// variables, and the prompt that its path names makes the body for the provider of
// them. Such a request goes on as one of the route for the type of the template.
type Prompt struct {
	Chat, Completion *Route
	// Render: the body itself is the answer, and nobody is asked.
	Render bool
}
