package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// Limits of a search.
const (
	maxQuery     = 1000 // characters
	maxFound     = 50
	defaultFound = 10
)

// searchTool is the definition of the search tool.
var searchTool = json.RawMessage(`{"name":"` + mcp.SearchTool + `","title":"Search tools","description":"Finds tools of this server by words of their names and descriptions. The result has whole definitions of tools, which can be called at once by their names, also where tools/list does not show them.",` +
	`"inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"Words of what the tool should do."},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10,"description":"How many tools at most."}},"required":["query"]},` +
	`"outputSchema":{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object"},"description":"Definitions as tools/list shows them, the best first."}},"required":["tools"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)

// search responds with the definitions of the tools that match a query. It counts as a tool
// call of the virtual server.
func (b *virtualServer) search() error {
	query, limit, bad := parseSearch(b.state.req.Fields["arguments"])
	if bad != "" {
		text, _ := json.Marshal(bad) // a string
		sendResult(b.state, b.complete(`{"content":[{"type":"text","text":`+string(text)+`}],"isError":true`))
		return nil
	}
	if err := b.state.call.Count(b.state.facts.Server.Record.Slug, mcp.SearchTool); err != nil {
		return err
	}
	all, gaps := b.tools()
	found := rank(all, query)
	found = found[:min(len(found), limit)]
	raws := make([]json.RawMessage, len(found))
	for i := range found {
		raws[i] = found[i].raw
	}
	structured, err := json.Marshal(map[string]any{"tools": raws})
	if err != nil {
		return err
	}
	text, _ := json.Marshal(string(structured)) // a string
	out := `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + string(structured)
	if len(gaps) > 0 {
		raw, err := json.Marshal(map[string][]missingMember{metaMissing: gaps})
		if err != nil {
			return err
		}
		out += `,"_meta":` + string(raw)
	}
	b.saveFound(found)
	return b.sendWithinLimit(b.complete(out))
}

// complete closes a result object for the client's protocol version.
func (b *virtualServer) complete(result string) []byte {
	if b.state.req.Era == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	return []byte(result + "}")
}

// parseSearch reads the arguments of a search. bad describes invalid arguments.
func parseSearch(raw json.RawMessage) (query string, limit int, bad string) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil || json.Unmarshal(args["query"], &query) != nil || len(words(query)) == 0 || utf8.RuneCountInString(query) > maxQuery {
		return "", 0, fmt.Sprintf("query must be a text of 1 to %d characters with words in it", maxQuery)
	}
	if limit = defaultFound; args["limit"] != nil && string(args["limit"]) != "null" && (json.Unmarshal(args["limit"], &limit) != nil || limit < 1 || limit > maxFound) {
		return "", 0, fmt.Sprintf("limit must be a whole number from 1 to %d", maxFound)
	}
	return query, limit, ""
}

// words splits a text into lowercase words.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// rank returns the tools that match a query, the best first. Ties keep the order of the list.
func rank(all []listedTool, query string) []listedTool {
	queryWords := words(query)
	slices.Sort(queryWords)
	queryWords = slices.Compact(queryWords)
	type scored struct {
		listedTool
		score int
	}
	var found []scored
	for _, o := range all {
		if n := score(&o, queryWords); n > 0 {
			found = append(found, scored{o, n})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].score > found[j].score })
	out := make([]listedTool, len(found))
	for i := range found {
		out[i] = found[i].listedTool
	}
	return out
}

// score weighs a tool: words in the name count most, and whole words more than parts.
func score(o *listedTool, queryWords []string) (n int) {
	var shape struct{ Title, Description string }
	_ = json.Unmarshal(o.raw, &shape) // an unexpected type counts as empty
	for _, in := range []struct {
		text        string
		whole, part int
	}{{o.name, 8, 4}, {shape.Title, 4, 2}, {shape.Description, 2, 1}} {
		all := words(in.text)
		for _, w := range queryWords {
			switch {
			case slices.Contains(all, w):
				n += in.whole
			case strings.Contains(strings.ToLower(in.text), w):
				n += in.part
			}
		}
	}
	return n
}
