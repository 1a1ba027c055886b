package toolrun

import (
	"encoding/json"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// This file reads what a client sends back of earlier answers: calls of ours become the
// model's calls and their results again.

// ofOurs is what is read of an item of the input.
type ofOurs struct {
	Type     json.RawMessage `json:"type"`
	ID       json.RawMessage `json:"id"`
	Label    json.RawMessage `json:"server_label"`
	Name     json.RawMessage `json:"name"`
	Args     json.RawMessage `json:"arguments"`
	Output   json.RawMessage `json:"output"`
	Error    json.RawMessage `json:"error"`
	Approval json.RawMessage `json:"approval_request_id"`
	Approve  json.RawMessage `json:"approve"`
	Reason   json.RawMessage `json:"reason"`
}

// readItems takes the input apart. listed are the servers whose tools the client has been
// shown, first the calls that it approves now.
func (s *responses) readItems() (listed map[string]bool, first []*call, err error) {
	items := make([]ofOurs, len(s.input))
	listed = map[string]bool{}
	requests, made := map[string]int{}, map[string]bool{}
	for i, raw := range s.input {
		_ = json.Unmarshal(raw, &items[i]) // of another form: it is none of these
		switch it := &items[i]; text(it.Type) {
		case "mcp_call":
			made[text(it.Approval)] = true
		case "mcp_approval_request":
			requests[text(it.ID)] = i
		}
	}
	input := s.input
	s.input = make([]json.RawMessage, 0, len(input))
	for i, raw := range input {
		it := &items[i]
		kind, ours := text(it.Type), strings.HasPrefix(text(it.Label), labelPrefix)
		switch {
		case kind == "mcp_list_tools" && ours:
			listed[text(it.Label)] = true
		case kind == "mcp_call" && ours:
			s.said(it, callPrefix)
			s.answered(it, callPrefix, it.result())
		case kind == "mcp_approval_request" && ours:
			if !made[text(it.ID)] {
				s.said(it, approvalPrefix)
			}
		case kind == "mcp_approval_response" && strings.HasPrefix(text(it.Approval), approvalPrefix):
			at, known := requests[text(it.Approval)]
			if !known || at > i {
				return nil, nil, fault.Invalid("input["+strconv.Itoa(i)+"].approval_request_id", "must be the id of an mcp_approval_request that stands before it in input")
			}
			if made[text(it.Approval)] {
				continue
			}
			c, err := s.approved(it, &items[at], i)
			if err != nil {
				return nil, nil, err
			}
			if c != nil {
				first, s.input = append(first, c), append(s.input, nil)
				c.place = len(s.input)
			}
		default:
			s.input = append(s.input, raw)
		}
	}
	return listed, first, nil
}

// idOf is the model's id of a call.
func (it *ofOurs) idOf(prefix string) string { return strings.TrimPrefix(text(it.ID), prefix) }

// said puts a call back as the model's.
func (s *responses) said(it *ofOurs, prefix string) {
	s.input = append(s.input, encoded(object{
		"type": quoted("function_call"), "call_id": quoted(it.idOf(prefix)), "name": quoted(s.names.as(text(it.Label), text(it.Name))), "arguments": quoted(text(it.Args)),
	}))
}

// answered puts a result back.
func (s *responses) answered(it *ofOurs, prefix, result string) {
	s.input = append(s.input, encoded(object{"type": quoted("function_call_output"), "call_id": quoted(it.idOf(prefix)), "output": quoted(result)}))
}

// result is what came of a call, as the client was shown it.
func (it *ofOurs) result() string {
	if out := text(it.Output); out != "" || it.Error == nil || string(it.Error) == "null" {
		return out
	}
	var of struct {
		Message json.RawMessage   `json:"message"`
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(it.Error, &of) != nil {
		return text(it.Error)
	}
	said := []string{}
	for _, raw := range of.Content {
		var part struct{ Text json.RawMessage }
		_ = json.Unmarshal(raw, &part) // another form says nothing
		said = append(said, text(part.Text))
	}
	if m := text(of.Message); m != "" {
		said = append(said, m)
	}
	return strings.Join(said, "\n")
}

// approved takes in what the client says to a call; nil: it is not to be made.
func (s *responses) approved(answer, asked *ofOurs, at int) (*call, error) {
	var yes bool
	if json.Unmarshal(answer.Approve, &yes) != nil {
		return nil, fault.Invalid("input["+strconv.Itoa(at)+"].approve", "must be a boolean")
	}
	t := s.names.of(text(asked.Label), text(asked.Name))
	switch {
	case !yes:
		why := "The user has not approved this call."
		if r := text(answer.Reason); r != "" {
			why += " " + r
		}
		s.answered(asked, approvalPrefix, why)
		return nil, nil
	case t == nil:
		s.answered(asked, approvalPrefix, "The tool is not offered any more.")
		return nil, nil
	}
	return &call{id: asked.idOf(approvalPrefix), tool: t, args: text(asked.Args), approval: text(asked.ID)}, nil
}
