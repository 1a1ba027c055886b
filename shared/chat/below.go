package chat

import (
	"bytes"
	"strconv"
)

// Below is a set of nested request fields that few wire formats support and that encoders do
// not check individually.
type Below uint8

const (
	BelowCitations      Below = 1 << iota // sources of earlier responses
	BelowDocuments                        // fields of documents: context, citations
	BelowTitles                           // names of media
	BelowRemoteTitles                     // names of media that are text, or that the provider fetches or stores
	BelowCallSignatures                   // signatures on tool calls
	BelowResultMarkers                    // cache markers within tool results
	BelowWay                              // Reasoning.Way, if it is treated as adaptive
)

// ReportBelow reports those of fields that the request has, for an encoder that supports none
// of them. All encoders call it, so a new field is reported by every encoder that does not
// support it.
func (r *Request) ReportBelow(loss *Loss, members Below) {
	if members&BelowWay != 0 && r.Reasoning.Way != "" {
		loss.Add("thinking.type", "not known; taken for adaptive")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			p := &m.Parts[j]
			reportBelow(m.Path, p, loss, members&^BelowResultMarkers)
			if p.Result == nil {
				continue
			}
			within := func(q *Part) string { return m.inResult(p, q) }
			for k := range p.Result.Parts {
				reportBelow(within, &p.Result.Parts[k], loss, members)
			}
		}
	}
}

// inResult returns the path of a part of a tool result, which is a separate message in chat
// completions and a part in other formats.
func (m *Message) inResult(result, p *Part) string {
	at := m.Path(nil)
	if m.Role != ToolRole || len(m.Parts) > 1 {
		at = m.Path(result)
	}
	return at + ".content[" + strconv.Itoa(p.At) + "]"
}

func reportBelow(path func(*Part) string, p *Part, loss *Loss, members Below) {
	if members&BelowResultMarkers != 0 && p.Cache != NoCache {
		loss.Add(path(p)+".cache_control", "not taken inside of the result of a tool")
	}
	if members&BelowCitations != 0 && p.Kind == Text && len(p.Citations) > 0 {
		loss.Add(path(p)+".citations", "sources of earlier answers are not taken by this provider")
	}
	if members&BelowCallSignatures != 0 && p.Call != nil && p.Call.Signature != "" {
		loss.Add(path(p)+".function.thought_signature", "signature of another provider")
	}
	if p.Media != nil {
		reportMedia(path, p, loss, members)
	}
}

func reportMedia(path func(*Part) string, p *Part, loss *Loss, members Below) {
	const notTaken = "not taken by this provider"
	media := p.Media
	if members&BelowDocuments != 0 {
		if media.Context != "" {
			loss.Add(path(p)+".context", notTaken)
		}
		if bytes.Contains(media.Citations, []byte("true")) {
			loss.Add(path(p)+".citations", notTaken)
		}
	}
	remote := media.Plain || media.Data == ""
	if media.Name != "" && (members&BelowTitles != 0 || members&BelowRemoteTitles != 0 && remote) {
		loss.Add(path(p)+".file.filename", notTaken)
	}
}
