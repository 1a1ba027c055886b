package chat

// AnswerTool is the hidden tool by whose arguments a model gives an answer of a
// schema, where its host cannot hold it to one. Clients never see it: answers and
// streams show the arguments as text.
const AnswerTool = "gateway_json_answer"

// What a model is told about answers in JSON.
const (
	AnswerToolDescription = "Give the answer to the user by calling this tool once. Its arguments are the whole answer."
	JSONInstruction       = "Answer with one JSON object and nothing else: no text around it, no code fence."
)

// Unhide gives the arguments of the hidden tool as the text of the answer. The
// text around it was not part of what the client asked for.
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
