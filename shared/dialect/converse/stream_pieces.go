package converse

import (
	"encoding/base64"

	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// pieces are what a delta may bring; values alias the event.
type pieces struct {
	text, input, thought, signature, redacted, citation []byte

	image []byte // base64
}

func rawString(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	return d.RawStr()
}

func (p *pieces) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "text":
			p.text = rawString(d)
		case "toolUse":
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					if string(key) == "input" {
						p.input = rawString(d)
					}
				}
			}
		case "reasoningContent":
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					switch string(key) {
					case "text":
						p.thought = rawString(d)
					case "signature":
						p.signature = rawString(d)
					case "redactedContent":
						p.redacted = rawString(d)
					}
				}
			}
		case "image":
			_, data := readImage(d)
			p.image = []byte(data)
		case "citation":
			if d.Kind() == wire.KindObject {
				p.citation = d.Raw()
			}
		}
	}
}

// invoked meters a chunk of InvokeModelWithResponseStream, {"bytes": base64 of the model's
// own event}. The last one holds the service's counts.
func (s *streamDecoder) invoked() error {
	d := &s.d
	var data []byte
	for key := range d.Object {
		if string(key) == "bytes" {
			data, _ = base64.StdEncoding.DecodeString(upstream.OptString(d))
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	s.m.Started = true
	s.m.OutputBytes += int64(len(data))
	in := wire.NewDecoder(data)
	if in.Kind() != wire.KindObject {
		return nil
	}
	for key := range in.Object {
		if string(key) != "amazon-bedrock-invocationMetrics" || in.Kind() != wire.KindObject {
			continue
		}
		for key := range in.Object {
			switch string(key) {
			case "inputTokenCount":
				upstream.Count(in, &s.u.input)
			case "outputTokenCount":
				upstream.Count(in, &s.u.output)
			case "cacheReadInputTokenCount":
				upstream.Count(in, &s.u.read)
			case "cacheWriteInputTokenCount":
				upstream.Count(in, &s.u.write)
			}
		}
		s.m.Complete = true
		s.u.classes(&s.m.Usage)
	}
	return nil
}
