package body

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Documented defaults of optional fields, and limits of values that a request cannot state.
const (
	usualSeconds  = 4  // of a video by Sora
	mostSeconds   = 12 // of a video by Sora
	veoSeconds    = 8
	imagenSamples = 4
	mostPages     = 1000
	leastAudio    = 750 // bytes in a second of audio
	mostCount     = 1 << 20
)

// UnitsOf returns the units that a POST to a path demands. The body is JSON, or nil if it is not
// read; then length is that of the request. A class of units that is missing in Most has no
// bound.
func UnitsOf(escapedPath string, body []byte, length int64) routes.Units {
	s := stated{characters: int64(utf8.RuneCount(body)), read: body != nil}
	s.json(wire.NewDecoder(body), "", 0)
	return s.demand(escapedPath, length)
}

// DemandOfForm is UnitsOf for a form; get returns the value of a field.
func DemandOfForm(escapedPath string, get func(name string) (string, bool), length int64) routes.Units {
	s := stated{read: true}
	for name := range exact {
		if value, ok := get(name); ok {
			s.set(name, name, value)
		}
	}
	return s.demand(escapedPath, length)
}

// exact are the documented paths of the fields that may state less than the default. In other
// places and spellings, which the provider may ignore, fields can only state more.
var exact = map[string]bool{
	"n": true, "seconds": true, "size": true, "quality": true,
	"parameters.sampleCount": true, "parameters.durationSeconds": true, "parameters.resolution": true,
}

// counts and durations are canonical names of fields.
var (
	counts = map[string]bool{
		"n": true, "numimages": true, "numberofimages": true, "samplecount": true, "samples": true, "numoutputs": true, "maximages": true, "numvideos": true, "numberofvideos": true,
	}
	durations = map[string]bool{"seconds": true, "duration": true, "durationseconds": true}
)

// stated holds the values in a body.
type stated struct {
	exact                     map[string]string
	count, seconds, instances int64 // the most, wherever it is
	characters                int64
	address                   bool // of a file that the provider fetches
	read                      bool
}

const maxDepth = 8

func (s *stated) json(d *wire.Decoder, path string, depth int) {
	switch k := d.Kind(); {
	case k == wire.KindArray && depth < maxDepth:
		n := int64(0)
		for range d.Array {
			n++
			s.json(d, path+"[]", depth+1)
		}
		if path == "instances" {
			s.instances = max(s.instances, n)
		}
	case k == wire.KindObject && depth < maxDepth:
		for key := range d.Object {
			name := string(key)
			at := name
			if path != "" {
				at = path + "." + name
			}
			switch d.Kind() {
			case wire.KindString:
				s.set(at, name, d.Str())
			case wire.KindNumber:
				s.set(at, name, string(d.Raw()))
			default:
				s.json(d, at, depth+1)
			}
		}
	default:
		d.Skip()
	}
}

func (s *stated) set(path, name, value string) {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	s.address = s.address || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri")
	switch {
	case counts[name]:
		s.count = max(s.count, number(value))
	case durations[name]:
		s.seconds = max(s.seconds, number(value))
	}
	if !exact[path] {
		return
	}
	if s.exact == nil {
		s.exact = map[string]string{}
	}
	if before, twice := s.exact[path]; twice && before != value {
		value = "twice" // not a size, and not a number
	}
	s.exact[path] = value
}

// number reads a number of units, rounded up; 0 if it is none.
func number(value string) int64 {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), "s"), 64) // 5s
	if err != nil || !(n > 0) {
		return 0
	}
	whole := int64(min(n, mostCount))
	if float64(whole) < n && whole < mostCount {
		whole++
	}
	return whole
}

// sizes are the sizes of videos by Veo's names.
var sizes = map[string]string{"": "1280x720", "720p": "1280x720", "1080p": "1920x1080", "4k": "3840x2160"}

func (s *stated) demand(escapedPath string, length int64) (d routes.Units) {
	path := strings.TrimRight(strings.ToLower(escapedPath), "/")
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(path, part) {
				return true
			}
		}
		return false
	}
	groups := max(s.instances, 1)
	switch {
	case strings.HasSuffix(path, ":predictlongrunning"):
		one := cmp.Or(number(s.exact["parameters.durationSeconds"]), veoSeconds)
		d = routes.Units{Size: sizes[strings.ToLower(s.exact["parameters.resolution"])], Assumed: pricing.Usage{Estimated: true}}
		d.Most.Set(pricing.Seconds, max(one, s.seconds)*max(s.count, 1)*groups)
		d.Assumed.Set(pricing.Seconds, one*max(number(s.exact["parameters.sampleCount"]), 1)*groups)
	case strings.HasSuffix(path, "/videos"):
		asked := number(s.exact["seconds"])
		d = routes.Units{Size: cmp.Or(s.exact["size"], "720x1280"), Assumed: pricing.Usage{Estimated: true}}
		d.Most.Set(pricing.Seconds, max(cmp.Or(asked, mostSeconds), s.seconds)*max(s.count, 1))
		d.Assumed.Set(pricing.Seconds, cmp.Or(asked, usualSeconds)*max(number(s.exact["n"]), 1))
	case strings.HasSuffix(path, ":predict"):
		d.Most.Set(pricing.Images, max(cmp.Or(number(s.exact["parameters.sampleCount"]), imagenSamples), s.count)*groups)
	case has("text-to-speech", "/speak", "/speech", "/tts", "synthesize") && s.read:
		d.Most.Set(pricing.Characters, s.characters)
	case has("/listen", "transcri", "speech-to-text"):
		if !s.address && length > 0 {
			d.Most.Set(pricing.Seconds, length/leastAudio+1)
		}
	case has("/ocr"):
		d.Most.Set(pricing.Pages, mostPages)
	case has("rerank", ":rank"):
		d.Most.Set(pricing.Pages, length/300+1)
	case s.count > 0, has("/stable-image/"), s.read && (has("/invoke", "/images/", "/text-to-image", "/image-to-image") || strings.HasPrefix(path, "/fal-ai/")):
		d = routes.Units{Quality: s.exact["quality"], Size: s.exact["size"]}
		d.Most.Set(pricing.Images, max(s.count, 1)*groups)
		d.Most.Set(pricing.Pages, length/300+1) // of a reranker
	}
	return d
}

// Video is the state of a video in a response, in OpenAI's format.
type Video struct {
	Model, Size string
	Usage       pricing.Usage
}

var videoKeys = wire.NewKeySet("object", "model", "size", "seconds")

// ReadVideo reads the video of a response; ok is false if it has none, or one that failed.
func ReadVideo(answer []byte) (video Video, ok bool) {
	var w wire.Walk
	if videoKeys.Walk(answer, &w) != nil {
		return video, false
	}
	text := func(i int) string {
		raw := w.Spans[i].Of(answer)
		if s, err := wire.ScanString(raw, ""); err == nil {
			return s
		}
		return string(raw)
	}
	seconds := number(text(3))
	if text(0) != "video" || seconds == 0 {
		return video, false
	}
	video.Model, video.Size = text(1), text(2)
	video.Usage.Set(pricing.Seconds, seconds)
	return video, true
}

// Job is what a response says about videos that a provider makes in its own time.
type Job struct {
	ID             string // of the video, or of the operation without its path
	Ended, Failed  bool
	Made, Withheld int64 // videos, if the response lists them: those filtered by the provider are withheld
}

// ReadJob reads the response to the order or to a read of a video job: a video in OpenAI's format,
// or a long-running operation of Google's. ok is false for anything else.
func ReadJob(response []byte) (job Job, ok bool) {
	type samples struct {
		Samples  []json.RawMessage `json:"generatedSamples"`
		Videos   []json.RawMessage `json:"videos"`
		Filtered int64             `json:"raiMediaFilteredCount"`
	}
	var r struct {
		Object   string          `json:"object"`
		ID       string          `json:"id"`
		Status   string          `json:"status"`
		Name     string          `json:"name"`
		Done     bool            `json:"done"`
		Error    json.RawMessage `json:"error"`
		Response struct {
			samples
			Inner samples `json:"generateVideoResponse"`
		} `json:"response"`
	}
	if json.Unmarshal(response, &r) != nil {
		return job, false
	}
	if r.Object == "video" {
		job.ID, job.Failed = r.ID, r.Status == "failed"
		job.Ended = job.Failed || r.Status == "completed"
		return job, r.ID != ""
	}
	at := strings.LastIndex(r.Name, "operations/")
	if at < 0 {
		return job, false
	}
	job.ID, job.Ended = r.Name[at+len("operations/"):], r.Done
	job.Failed = r.Done && len(r.Error) > 0 && !wire.IsNull(r.Error)
	for _, s := range [...]samples{r.Response.samples, r.Response.Inner} {
		job.Made += int64(len(s.Samples) + len(s.Videos))
		job.Withheld += max(s.Filtered, 0)
	}
	return job, job.ID != ""
}

// BilledSeconds returns the seconds that a provider bills of those that were ordered. Providers bill
// the videos that they deliver: a failed job is free, and so is a withheld video.
func (j *Job) BilledSeconds(ordered int64) int64 {
	switch all := j.Made + j.Withheld; {
	case j.Failed || all > 0 && j.Made == 0:
		return 0
	case j.Withheld > 0 && all <= mostCount:
		return (ordered*j.Made + all - 1) / all
	}
	return ordered
}

// OrdersVideo reports whether a POST to the path has a provider make videos in its own time.
func OrdersVideo(escapedPath string) bool {
	path := strings.TrimRight(strings.ToLower(escapedPath), "/")
	if strings.HasSuffix(path, ":predictlongrunning") || strings.HasSuffix(path, "/videos") {
		return true
	}
	for _, end := range [...]string{"/videos/edits", "/videos/extensions", "/remix"} {
		if strings.HasSuffix(path, end) {
			return strings.Contains(path, "/videos/")
		}
	}
	return false
}

// PathOfJob returns where the job with an id is read by GET, given the path of its order; empty if
// it is not read by GET, as at Vertex AI.
func PathOfJob(escapedPath, escapedID string) string {
	lower := strings.ToLower(escapedPath)
	if at := strings.LastIndex(lower, ":predictlongrunning"); at >= 0 {
		if strings.Contains(lower, "/publishers/") {
			return ""
		}
		return escapedPath[:at] + "/operations/" + escapedID
	}
	if at := strings.LastIndex(lower, "/videos"); at >= 0 {
		return escapedPath[:at] + "/videos/" + escapedID
	}
	return ""
}
