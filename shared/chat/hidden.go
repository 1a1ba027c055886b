package chat

// AnswerTool is a hidden tool. If a host cannot force a model to follow a schema, the model
// returns its response as this tool's arguments. Clients never see the tool: responses and
// streams show the arguments as text.
const AnswerTool = "gateway_json_answer"

// Instructions to a model for JSON responses.
const (
	AnswerToolDescription = "Give the answer to the user by calling this tool once. Its arguments are the whole answer."
	JSONInstruction       = "Answer with one JSON object and nothing else: no text around it, no code fence."
)

// Unhide replaces the text of the response by the arguments of the hidden tool. Text around the
// call is dropped.
func (c *Choice) Unhide() {
	hidden, others := -1, false
	for i := range c.Parts {
		if call := c.Parts[i].Call; call != nil {
			if call.Name == AnswerTool {
				hidden = i
			} else {
				others = true
			}
		}
	}
	if hidden < 0 {
		return
	}
	answer := Part{Kind: Text, Text: c.Parts[hidden].Call.Arguments}
	kept := c.Parts[:0]
	for i, p := range c.Parts {
		switch {
		case i == hidden:
			kept = append(kept, answer)
		case p.Kind == Text, p.Call != nil && p.Call.Name == AnswerTool:
		default:
			kept = append(kept, p)
		}
	}
	c.Parts = kept
	if c.Stop == StopToolCalls && !others {
		c.Stop = StopEnd
	}
}

// SchemaInstruction returns the instruction that contains the schema of the response.
func SchemaInstruction(schema []byte) string {
	return JSONInstruction + " The JSON object must match this JSON schema: " + string(schema)
}
