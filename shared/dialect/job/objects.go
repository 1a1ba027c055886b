package job

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// partSize is the length of a part of a long object, in bytes. Amazon S3 takes 10,000 parts
// of at least 5 MiB; Cloud Storage does the same.
const partSize = 8 << 20

// putObject writes an object, named as bucket/key: in one call when it is short, otherwise
// in parts. If the source breaks off, no object is made.
func putObject(ctx context.Context, j *chat.Job, object string, src io.Reader) error {
	head := http.Header{"Content-Type": {"application/x-ndjson"}}
	for field, name := range map[string]string{
		"amz_server_side_encryption":                "X-Amz-Server-Side-Encryption",
		"amz_server_side_encryption_aws_kms_key_id": "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
	} {
		if v := j.Field(field); v != "" {
			head[name] = []string{v}
		}
	}
	part := make([]byte, partSize)
	n, err := io.ReadFull(src, part)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		if n == 0 {
			return nil // the caller reports that it is missing
		}
		return discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPut, Object: object, Header: head, Body: part[:n]}))
	}
	if err != nil {
		return err
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Object: object, Query: "uploads=", Header: head})
	if err != nil {
		return err
	}
	respBody, err := readText(resp)
	if err != nil {
		return err
	}
	upload := xmlText(respBody, "UploadId")
	if upload == "" {
		return upstream.Invalid("The provider's response names no upload", nil)
	}
	if err := putParts(ctx, j, object, upload, part, src); err != nil {
		_ = discard(j.Call(context.WithoutCancel(ctx), &chat.JobCall{Method: http.MethodDelete, Object: object, Query: "uploadId=" + escape(upload)}))
		return err
	}
	return nil
}

// putParts sends the parts, the first of which has been read, and closes the
// upload.
func putParts(ctx context.Context, j *chat.Job, object, upload string, part []byte, src io.Reader) error {
	var list strings.Builder
	list.WriteString("<CompleteMultipartUpload>")
	for n, length := 1, len(part); length > 0; n++ {
		resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPut, Object: object, Query: "partNumber=" + itoa(int64(n)) + "&uploadId=" + escape(upload), Body: part[:length]})
		if err != nil {
			return err
		}
		tag := resp.Header.Get("ETag")
		_ = resp.Body.Close()
		list.WriteString("<Part><PartNumber>" + itoa(int64(n)) + "</PartNumber><ETag>" + html.EscapeString(tag) + "</ETag></Part>")
		if length, err = io.ReadFull(src, part); err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	list.WriteString("</CompleteMultipartUpload>")
	resp, err := j.Call(ctx, &chat.JobCall{
		Method: http.MethodPost, Object: object, Query: "uploadId=" + escape(upload), Header: http.Header{"Content-Type": {"application/xml"}}, Body: []byte(list.String()),
	})
	if err != nil {
		return err
	}
	respBody, err := readText(resp)
	if err == nil && xmlText(respBody, "Code") != "" { // an error may come after the head of the response
		err = upstream.Failed(http.StatusBadGateway, xmlText(respBody, "Code"), orElse(xmlText(respBody, "Message"), "The object was not written"))
	}
	return err
}

// escape escapes a value of a query in the way that signatures require.
func escape(s string) string {
	return strings.ReplaceAll(EscapeSegment(s), "~", "%")
}

func discard(resp *http.Response, err error) error {
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// readText reads a short response completely.
func readText(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fault.From(upstream.Invalid("The provider's response was truncated", err))
	}
	return b, nil
}

// storeError reads the error of an object store, which is XML; nil for anything else.
func storeError(status int, h http.Header, body []byte) *fault.Fault {
	code := xmlText(body, "Code")
	if code == "" {
		return nil
	}
	return chat.CompleteFault(upstream.Failed(status, code, orElse(xmlText(body, "Message"), code)), status, h)
}

// xmlText is the text of the first element with a name in a flat XML response; ""
// for none.
func xmlText(b []byte, name string) string {
	_, rest, ok := strings.Cut(string(b), "<"+name+">")
	if !ok {
		return ""
	}
	text, _, ok := strings.Cut(rest, "</"+name+">")
	if !ok {
		return ""
	}
	return html.UnescapeString(text)
}

const hexDigits = "0123456789ABCDEF"

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// EscapeSegment writes a name as one segment of a path that no client escapes: every byte except
// letters, digits, '-', '_' and '.' becomes '~' and two digits.
func EscapeSegment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('~')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// Named is the name that EscapeSegment wrote. Every other spelling is an error, so that each thing
// has only one id.
func Named(id string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		if id[i] != '~' {
			b.WriteByte(id[i])
			continue
		}
		if i+2 >= len(id) {
			return "", unknown(id)
		}
		hi, lo := strings.IndexByte(hexDigits, id[i+1]), strings.IndexByte(hexDigits, id[i+2])
		if hi < 0 || lo < 0 {
			return "", unknown(id)
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	if name := b.String(); name != "" && EscapeSegment(name) == id {
		return name, nil
	}
	return "", unknown(id)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// unknown is the response for ids of things that do not exist.
func unknown(id string) error {
	if len(id) > 128 {
		id = id[:128] + "..."
	}
	return fault.Newf(fault.NotFound, "id", "There is no object with the id %q", id)
}
