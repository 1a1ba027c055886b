package openai

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of the metadata of batches. The provider rejects whatever the specification does
// not bound.
const (
	maxMetadata    = 16 // pairs
	maxMetadataKey = 64 // characters
	maxMetadataVal = 512
)

var moderationChecker = newChecker(require("input", "a string, or a list of strings or parts"),
	bound{key: "model", test: testName},
	bound{key: "input", test: testTexts},
)

// CheckModeration tests the bounds of a body of /moderations.
func CheckModeration(body []byte) error { return moderationChecker.only(body) }

var imageChecker = newChecker(require("prompt", "a string"),
	bound{key: "model", test: testName},
	bound{key: "prompt", test: testString},
	bound{key: "n", test: testInteger, min: 1, max: unbounded},
	bound{key: "size", test: testString},
	bound{key: "quality", test: testString},
	bound{key: "style", test: testString},
	bound{key: "response_format", test: testString},
	bound{key: "stream", test: testBool},
	bound{key: "partial_images", test: testInteger, min: 0, max: unbounded},
	bound{key: "output_compression", test: testInteger, min: 0, max: unbounded},
	bound{key: "user", test: testString},
)

// CheckImage tests the bounds of a body of /images/generations.
func CheckImage(body []byte) error { return imageChecker.only(body) }

var speechChecker = newChecker(require("input", "a string", "voice", "the name of a voice"),
	bound{key: "model", test: testName},
	bound{key: "input", test: testName},
	bound{key: "voice", test: testVoice},
	bound{key: "response_format", test: testString},
	bound{key: "speed", test: testNumber, min: math.Inf(-1), max: unbounded},
	bound{key: "instructions", test: testString},
	bound{key: "stream_format", test: testString},
)

// CheckSpeech tests the bounds of a body of /audio/speech.
func CheckSpeech(body []byte) error { return speechChecker.only(body) }

var batchChecker = newChecker(require("input_file_id", "the id of a file", "endpoint", "the path that the rows call", "completion_window", "24h"),
	bound{key: "input_file_id", test: testName},
	bound{key: "endpoint", test: testEndpoint},
	bound{key: "completion_window", test: testName},
	bound{key: "metadata", test: testMetadata},
	bound{key: "output_expires_after", test: testObject},
)

// CheckBatch tests the bounds of a body of /batches.
func CheckBatch(body []byte) error { return batchChecker.only(body) }

var fineTuneChecker = newChecker(require("training_file", "the id of a file"),
	bound{key: "model", test: testName},
	bound{key: "training_file", test: testName},
	bound{key: "validation_file", test: testName},
	bound{key: "suffix", test: testString},
	bound{key: "hyperparameters", test: testObject},
	bound{key: "method", test: testObject},
	bound{key: "integrations", test: testObjects, min: 0, max: 1 << 30},
	bound{key: "seed", test: testInteger, min: math.Inf(-1), max: unbounded},
	bound{key: "metadata", test: testObject},
)

// CheckFineTune tests the bounds of a body of /fine_tuning/jobs.
func CheckFineTune(body []byte) error { return fineTuneChecker.only(body) }

var rerankChecker = newChecker(require("query", "a string", "documents", "a list of texts"),
	bound{key: "model", test: testName},
	bound{key: "query", test: testAnyQuery},
	bound{key: "documents", test: testDocuments},
	bound{key: "top_n", test: testInteger, min: 1, max: unbounded},
	bound{key: "return_documents", test: testBool},
	bound{key: "max_tokens_per_doc", test: testInteger, min: 1, max: unbounded},
)

// CheckRerank tests the bounds of a body of /rerank.
func CheckRerank(body []byte) error { return rerankChecker.only(body) }

var ocrChecker = newChecker(require("document", "an object with its type"),
	bound{key: "model", test: testName},
	bound{key: "document", test: testDocument},
	bound{key: "include_image_base64", test: testBool},
)

// CheckOCR tests the bounds of a body of /ocr.
func CheckOCR(body []byte) error { return ocrChecker.only(body) }

// only checks a body without retaining its traversal.
func (c *checker) only(body []byte) error {
	var checked chat.Checked
	return c.check(body, &checked)
}

// require makes the rule that fields must be present; each name comes with what the field
// must be.
func require(keys ...string) func(members) error {
	return func(m members) error {
		for i := 0; i < len(keys); i += 2 {
			if m.get(keys[i]) == nil {
				return fault.Invalid(keys[i], "%s is required: %s", keys[i], keys[i+1])
			}
		}
		return nil
	}
}

func testTexts(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindString:
		return nil
	case wire.KindArray:
		if raw[skipSpace(raw, 1)] == ']' {
			return fault.Invalid(key, "%s must contain at least one text", key)
		}
		d := wire.NewDecoderAt(raw, key)
		for range d.Array {
			if k := d.Kind(); k != wire.KindString && k != wire.KindObject {
				d.Fail("must be a string or a part, not %s", k)
			}
		}
		return d.Err()
	}
	return fault.Invalid(key, "%s must be a string or a list of strings, not %s", key, wire.KindOf(raw))
}

// testVoice takes a name, or the id of the client's own voice.
func testVoice(key string, raw []byte, b *bound) error {
	if wire.KindOf(raw) == wire.KindObject {
		return nil
	}
	return testName(key, raw, b)
}

func testEndpoint(key string, raw []byte, _ *bound) error {
	s, err := wire.ScanString(raw, key)
	if err == nil && !strings.HasPrefix(s, "/") {
		err = fault.Invalid(key, "%s must be a path such as /v1/chat/completions", key)
	}
	return err
}

func testMetadata(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	n := 0
	for k := range d.Object {
		n++
		if utf8.RuneCount(k) > maxMetadataKey {
			return fault.Invalid(key, "%s has a key with more than %d characters", key, maxMetadataKey)
		}
		if v := d.Str(); utf8.RuneCountInString(v) > maxMetadataVal {
			d.Fail("must have at most %d characters", maxMetadataVal)
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	if n > maxMetadata {
		return fault.Invalid(key, "%s must have at most %d pairs", key, maxMetadata)
	}
	return nil
}

// testAnyQuery takes a text, or the parts of one.
func testAnyQuery(key string, raw []byte, b *bound) error {
	if wire.KindOf(raw) == wire.KindObject {
		return nil
	}
	return testName(key, raw, b)
}

func testDocuments(key string, raw []byte, _ *bound) error {
	if wire.KindOf(raw) != wire.KindArray {
		return fault.Invalid(key, "%s must be a list, not %s", key, wire.KindOf(raw))
	}
	d := wire.NewDecoderAt(raw, key)
	n := 0
	for range d.Array {
		n++
		switch d.Kind() {
		case wire.KindString:
		case wire.KindObject:
			for member := range d.Object {
				if string(member) == "text" && d.Kind() != wire.KindString {
					d.Fail("must be a string, not %s", d.Kind())
				}
			}
		default:
			d.Fail("must be a string or an object with text")
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	if n == 0 {
		return fault.Invalid(key, "%s must contain at least one document", key)
	}
	return nil
}

func testDocument(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	kind, named := "", map[string]bool{}
	for k := range d.Object {
		switch string(k) {
		case "type":
			kind = d.Str()
		case "document_url", "image_url":
			named[string(k)] = true
			if d.Kind() == wire.KindString {
				named[string(k)] = d.Str() != ""
			} else if d.Kind() != wire.KindObject {
				d.Fail("must be an address or a data URL")
			}
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	switch {
	case kind == "":
		return fault.Invalid(key+".type", "%s.type is required: document_url or image_url", key)
	case (kind == "document_url" || kind == "image_url") && !named[kind]:
		return fault.Invalid(key+"."+kind, "%s.%s is required: an address or a data URL", key, kind)
	}
	return nil
}

// Fields returns the fields of a multipart form known so far. If it is not Complete, more
// may follow.
type Fields interface {
	Get(name string) (string, bool)
	HasFile(name string) bool
	Complete() bool
}

// CheckUpload tests the fields of /files.
func CheckUpload(f Fields) error {
	if v, ok := f.Get("purpose"); ok && v == "" || !ok && f.Complete() {
		return fault.Invalid("purpose", "purpose is required: what the file is for")
	}
	return needFile(f, "file")
}

// CheckImageEdit tests the fields of /images/edits, CheckImageVariation those of
// /images/variations.
func CheckImageEdit(f Fields) error {
	if v, ok := f.Get("prompt"); ok && v == "" || !ok && f.Complete() {
		return fault.Invalid("prompt", "prompt is required: a string")
	}
	return CheckImageVariation(f)
}

// CheckImageVariation tests the fields of /images/variations.
func CheckImageVariation(f Fields) error {
	if err := fieldInteger(f, "n", 1); err != nil {
		return err
	}
	return needFile(f, "image")
}

// CheckTranscription tests the fields of /audio/transcriptions. Some hosts take the
// address of a recording in place of a file.
func CheckTranscription(f Fields) error {
	return CheckTranslation(f)
}

// CheckTranslation tests the fields of /audio/translations.
func CheckTranslation(f Fields) error {
	if v, ok := f.Get("url"); ok && v != "" {
		return fieldNumber(f, "temperature")
	}
	if err := fieldNumber(f, "temperature"); err != nil {
		return err
	}
	return needFile(f, "file")
}

func needFile(f Fields, name string) error {
	if f.Complete() && !f.HasFile(name) {
		return fault.Invalid(name, "%s is required: a file", name)
	}
	return nil
}

func fieldInteger(f Fields, name string, low int) error {
	if v, ok := f.Get(name); ok {
		if n, err := strconv.Atoi(v); err != nil || n < low {
			return fault.Invalid(name, "%s must be a whole number of at least %d", name, low)
		}
	}
	return nil
}

func fieldNumber(f Fields, name string) error {
	if v, ok := f.Get(name); ok {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return fault.Invalid(name, "%s must be a number", name)
		}
	}
	return nil
}
