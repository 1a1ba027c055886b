package tools

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
)

// This file reads items of earlier responses that a client sends back: calls by the gateway are
// converted to the model's calls and their results.

// ofOurs holds the fields read of an input item.
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

func readItems(input []json.RawMessage) []ofOurs {
	items := make([]ofOurs, len(input))
	for i, raw := range input {
		_ = json.Unmarshal(raw, &items[i]) // another format is none of these
	}
	return items
}

// listed reports whether the client has already listed a server.
func listed(items []ofOurs, label string) bool {
	return slices.ContainsFunc(items, func(it ofOurs) bool { return text(it.Type) == "mcp_list_tools" && text(it.Label) == label })
}

// restore converts the items of the input, and returns the calls that the client approves now.
func (s *responses) restore(items []ofOurs) (first []*call, err error) {
	requests, made, err := approvalsIn(items)
	if err != nil {
		return nil, err
	}
	input := s.input
	s.input = make([]json.RawMessage, 0, len(input))
	for i, raw := range input {
		it := &items[i]
		kind, ours := text(it.Type), strings.HasPrefix(text(it.Label), labelPrefix)
		at, answers := requests[text(it.Approval)]
		switch {
		case kind == "mcp_list_tools" && ours: // not for the model
		case kind == "mcp_call" && ours:
			id := strings.TrimPrefix(text(it.ID), callPrefix)
			s.restoreCall(it, id)
			s.restoreResult(id, it.result())
		case kind == "mcp_approval_request" && ours:
			if !made[text(it.ID)] {
				s.restoreCall(it, approval.ModelID(text(it.ID)))
			}
		case kind == "mcp_approval_response" && answers:
			if made[text(it.Approval)] {
				continue
			}
			c, err := s.approved(it, &items[at], i)
			if err != nil {
				return nil, err
			}
			if c != nil {
				s.stream.call(c)
				first, s.input, s.output = append(first, c), append(s.input, nil), append(s.output, nil) // set once the call is made
			}
		default:
			s.input = append(s.input, raw)
		}
	}
	return first, nil
}

// approvalsIn returns the positions of the gateway's approval requests, by their ids, and which
// of them have led to a call. A request may occur once, and be followed by one response. Other
// servers' requests and responses are for the provider.
func approvalsIn(items []ofOurs) (requests map[string]int, made map[string]bool, err error) {
	requests, made = map[string]int{}, map[string]bool{}
	foreign, answered := map[string]bool{}, map[string]bool{}
	for i := range items {
		it := &items[i]
		ours := strings.HasPrefix(text(it.Label), labelPrefix)
		field := "input[" + strconv.Itoa(i) + "]"
		switch kind := text(it.Type); {
		case kind == "mcp_call" && ours:
			made[text(it.Approval)] = true
		case kind == "mcp_approval_request" && !ours:
			foreign[text(it.ID)] = true
		case kind == "mcp_approval_request":
			if _, twice := requests[text(it.ID)]; twice {
				return nil, nil, fault.Invalid(field+".id", "must be the id of one mcp_approval_request only")
			}
			requests[text(it.ID)] = i
		case kind == "mcp_approval_response" && strings.HasPrefix(text(it.Approval), approval.Prefix) && !foreign[text(it.Approval)]:
			id := text(it.Approval)
			if _, known := requests[id]; !known {
				return nil, nil, fault.Invalid(field+".approval_request_id", "must be the id of an earlier mcp_approval_request in input")
			}
			if answered[id] {
				return nil, nil, fault.Invalid(field+".approval_request_id", "must be the id of an mcp_approval_request that has no other response")
			}
			answered[id] = true
		}
	}
	return requests, made, nil
}

// restoreCall restores a call as the model's.
func (s *responses) restoreCall(it *ofOurs, id string) {
	s.input = append(s.input, encoded(object{
		"type": quoted("function_call"), "call_id": quoted(id), "name": quoted(s.names.as(text(it.Label), text(it.Name))), "arguments": quoted(text(it.Args)),
	}))
}

// restoreResult restores a result.
func (s *responses) restoreResult(id, result string) {
	s.input = append(s.input, encoded(object{"type": quoted("function_call_output"), "call_id": quoted(id), "output": quoted(result)}))
}

// result returns the result of a call, as the client received it.
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
		_ = json.Unmarshal(raw, &part) // another format has no text
		said = append(said, text(part.Text))
	}
	if m := text(of.Message); m != "" {
		said = append(said, m)
	}
	return strings.Join(said, "\n")
}

// approved reads the client's decision on a call; nil if it is not to be made.
func (s *responses) approved(answer, asked *ofOurs, at int) (*call, error) {
	field := "input[" + strconv.Itoa(at) + "]"
	var yes bool
	if json.Unmarshal(answer.Approve, &yes) != nil {
		return nil, fault.Invalid(field+".approve", "must be a boolean")
	}
	request := text(asked.ID)
	of := approval.Call{ID: approval.ModelID(request), Server: text(asked.Label), Tool: text(asked.Name), Arguments: text(asked.Args)}
	if !yes {
		why := "The user has not approved this call."
		if r := text(answer.Reason); r != "" {
			why += " " + r
		}
		s.restoreResult(of.ID, why)
		return nil, s.loop.Approvals.Deny(s.loop.Context, field+".approval_request_id", request, &of)
	}
	t := s.names.of(of.Server, of.Tool)
	if t == nil {
		s.restoreResult(of.ID, "The tool is no longer offered.")
		return nil, nil
	}
	if err := s.loop.Approvals.Approve(s.loop.Context, field+".approval_request_id", request, &of); err != nil {
		return nil, err
	}
	return &call{id: of.ID, tool: t, args: of.Arguments, approval: request, index: len(s.output), place: len(s.input) + 1}, nil
}
