package anthropic

import (
	"encoding/base64"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// encodeMedia writes an image or document block.
func encodeMedia(e *requestEncoder, p *chat.Part, at place) error {
	m := p.Media
	document := p.Kind == chat.Document || namesPDF(m.URL)
	switch {
	case document && e.t.NoDocuments:
		return fault.Invalid(at.String(), "%s is a document, which this model does not take", at)
	case !document && e.t.NoImages:
		return fault.Invalid(at.String(), "%s is an image, which this model does not take", at)
	}
	if document {
		e.b = append(e.b, `{"type":"document","source":`...)
	} else {
		e.b = append(e.b, `{"type":"image","source":`...)
	}
	if err := source(e, m, document, at); err != nil {
		return err
	}
	if document {
		if m.Name != "" {
			str(e, "title", m.Name)
		}
		if m.Context != "" {
			str(e, "context", m.Context)
		}
		if len(m.Citations) > 0 {
			encodeKey(e, "citations")
			e.b = append(e.b, m.Citations...)
		}
	}
	if m.Detail != "" && m.Detail != "auto" {
		e.loss.Add(at.String()+".image_url.detail", notTaken)
	}
	marker(e, p.Cache, at)
	e.b = append(e.b, '}')
	return nil
}

// namesPDF reports whether an address ends in .pdf, whatever query signs it.
func namesPDF(address string) bool {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return len(address) > 4 && strings.EqualFold(address[len(address)-4:], ".pdf")
}

func source(e *requestEncoder, m *chat.Media, document bool, at place) error {
	switch {
	case m.FileID != "":
		e.b = append(e.b, `{"type":"file","file_id":`...)
		e.b = wire.AppendJSONString(e.b, m.FileID)
		e.b = append(e.b, '}')
		return nil
	case m.URL != "":
		if !strings.HasPrefix(m.URL, "https://") && !strings.HasPrefix(m.URL, "http://") {
			return fault.Invalid(at.String(), "%s must be a data: or https: URL for this provider", at)
		}
		e.b = append(e.b, `{"type":"url","url":`...)
		e.b = wire.AppendJSONString(e.b, m.URL)
		e.b = append(e.b, '}')
		return nil
	}
	kind, mime, data := "base64", m.MIME, m.Data
	switch {
	case document && (m.Plain || textual(mime)):
		kind, mime = "text", "text/plain"
		if !m.Plain {
			text, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				return fault.Invalid(at.String(), "%s is not valid base64", at)
			}
			data = string(text)
		}
	case document && mime != "application/pdf":
		return fault.Invalid(at.String(), "%s is a document of type %q; this provider accepts application/pdf and text", at, mime)
	case !document && !imageTypes[mime]:
		return fault.Invalid(at.String(), "%s is an image of type %q; this provider accepts image/jpeg, image/png, image/gif and image/webp", at, mime)
	}
	e.b = append(e.b, `{"type":"`...)
	e.b = append(e.b, kind...)
	e.b = append(e.b, `","media_type":`...)
	e.b = wire.AppendJSONString(e.b, mime)
	str(e, "data", data)
	e.b = append(e.b, '}')
	return nil
}

var imageTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

// textual reports whether a document's type is text to the provider.
func textual(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == "application/xml"
}
