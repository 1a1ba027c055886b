package report

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/axiomhq/hyperloglog"

	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Feedback is one piece of feedback, as counted by graphs.
type Feedback struct {
	At       time.Time // when it was given
	Value    int64
	Weighted float64
	Model    string // model that responded; "" if unknown
}

// Types of the points of feedback graphs.
type (
	Average struct {
		Avg float64 `json:"avg"`
	}
	Score struct {
		Score int64 `json:"score"`
		Total int64 `json:"total"`
	}
	ModelFeedback struct {
		Model string  `json:"ai_model"`
		Total int64   `json:"total"`
		Avg   float64 `json:"avg_weighted_feedback"`
	}
)

// feedbackDrawing draws a graph of feedback.
type feedbackDrawing struct {
	summary, point reflect.Type
	draw           func(f *Filter, marks []Feedback) Graph
}

func ofMarks[S, P any](draw func(f *Filter, marks []Feedback) (S, []P)) feedbackDrawing {
	return feedbackDrawing{reflect.TypeFor[S](), reflect.TypeFor[P](), func(f *Filter, marks []Feedback) Graph {
		summary, points := draw(f, marks)
		return graph(summary, points)
	}}
}

// feedbacks are the graphs of feedback, by the end of their path.
var feedbacks = map[string]feedbackDrawing{
	"feedbacks":           ofMarks(feedbackSums),
	"feedbacks/weighted":  ofMarks(weighted),
	"feedbacks/scores":    ofMarks(scores),
	"feedbacks/ai-models": ofMarks(byModel),
}

// FeedbackGraphs lists the graphs of feedback, as the ends of their paths.
func FeedbackGraphs() []string {
	return []string{"feedbacks", "feedbacks/ai-models", "feedbacks/scores", "feedbacks/weighted"}
}

// FeedbackGraphTypes is like GraphTypes, for FeedbackGraphs.
func FeedbackGraphTypes(name string) (summary, point reflect.Type) {
	return feedbacks[name].summary, feedbacks[name].point
}

// FeedbackGraph draws one of FeedbackGraphs, from the feedback in the time of f. f is
// valid.
func FeedbackGraph(name string, f *Filter, marks []Feedback) Graph {
	return feedbacks[name].draw(f, marks)
}

// samples returns the samples of each time bucket.
func samples(f *Filter, marks []Feedback) (buckets, []Sample) {
	b := divide(f)
	list := make([]Sample, b.n)
	for i := range marks {
		list[b.of(marks[i].At.UnixMicro())].Add(marks[i].Weighted)
	}
	return b, list
}

func feedbackSums(f *Filter, marks []Feedback) (Sum, []TotalPoint) {
	b, list := samples(f, marks)
	points := make([]TotalPoint, len(list))
	for i := range list {
		points[i] = TotalPoint{Bucket{b.at(i)}, Sum{list[i].N}}
	}
	return Sum{int64(len(marks))}, points
}

func weighted(f *Filter, marks []Feedback) (Average, []AvgPoint) {
	b, list := samples(f, marks)
	points, all := make([]AvgPoint, len(list)), Sample{}
	for i := range list {
		points[i] = AvgPoint{Bucket{b.at(i)}, list[i].Mean()}
		all.merge(&list[i])
	}
	return Average{all.Mean()}, points
}

func scores(_ *Filter, marks []Feedback) (Sum, []Score) {
	counts := map[int64]int64{}
	for i := range marks {
		counts[marks[i].Value]++
	}
	var points []Score
	for value, n := range counts {
		points = append(points, Score{value, n})
	}
	slices.SortFunc(points, func(x, y Score) int { return cmp.Compare(x.Score, y.Score) })
	return Sum{int64(len(marks))}, points
}

// byModel omits feedback with an unknown model.
func byModel(_ *Filter, marks []Feedback) (Empty, []ModelFeedback) {
	of := map[string]*Sample{}
	for i := range marks {
		m := &marks[i]
		if m.Model == "" {
			continue
		}
		if of[m.Model] == nil {
			of[m.Model] = new(Sample)
		}
		of[m.Model].Add(m.Weighted)
	}
	var points []ModelFeedback
	for model, s := range of {
		points = append(points, ModelFeedback{model, s.N, s.Mean()})
	}
	slices.SortFunc(points, func(x, y ModelFeedback) int {
		return cmp.Or(cmp.Compare(y.Total, x.Total), cmp.Compare(x.Model, y.Model))
	})
	return Empty{}, points
}

// RetainedSince returns from, or the start of a workspace's log retention if that is
// later.
func (r *Reader) RetainedSince(ctx context.Context, sc store.Scope, from time.Time) (time.Time, error) {
	cut, err := r.src.archive.Cut(ctx, sc)
	if err != nil || cut.First(sc.Workspace) <= from.UnixMicro() {
		return from, err
	}
	return time.UnixMicro(cut.First(sc.Workspace)).In(from.Location()), nil
}

// modelWeight estimates the memory for the model of a trace.
const modelWeight = 160

// Models returns, for each of the given traces, the model of its newest matching request.
// It omits traces without one. f is valid.
func (r *Reader) Models(ctx context.Context, sc store.Scope, f *Filter, traces map[string]struct{}) (map[string]string, error) {
	leave, err := r.src.budget.admit(ctx, 2*modelWeight*int64(len(traces)))
	if err != nil {
		return nil, err
	}
	defer leave()
	var sum *newestModels
	err = retryMerged(func() error {
		sum = &newestModels{traces: traces, of: map[string]modelAt{}}
		q := &query{bucket: func(int64) int { return 0 }, collect: func() collector { return &newestModels{traces: traces, of: map[string]modelAt{}} }, merge: sum.merge}
		q.need.dims[segment.TraceID], q.need.dims[segment.Model] = true, true
		return r.run(ctx, sc, f, q)
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(sum.of))
	for trace, m := range sum.of {
		out[trace] = m.model
	}
	return out, nil
}

// newestModels is the collector of Models.
type newestModels struct {
	traces map[string]struct{}
	of     map[string]modelAt
	t      *view
}

type modelAt struct {
	model string
	start int64
}

func (c *newestModels) begin(t *view)                          { c.t = t }
func (c *newestModels) users(*hyperloglog.Sketch, string, int) {}

func (c *newestModels) row(i, _ int) {
	trace := c.t.Dims[segment.TraceID].At(i)
	if _, wanted := c.traces[trace]; wanted {
		c.take(trace, modelAt{c.t.Dims[segment.Model].At(i), c.t.Ints[segment.Start][i]})
	}
}

// take stores the newer one; at the same time the first name alphabetically, so that the
// result is deterministic.
func (c *newestModels) take(trace string, m modelAt) {
	if was, ok := c.of[trace]; ok && (was.start > m.start || was.start == m.start && was.model <= m.model) {
		return
	}
	m.model = strings.Clone(m.model) // a clone, to release the page
	c.of[strings.Clone(trace)] = m
}

func (c *newestModels) merge(o collector) {
	for trace, m := range o.(*newestModels).of {
		c.take(trace, m)
	}
}

// RateByMetadata sums the feedback of matching requests by the value of a metadata key.
// Each request of a trace with feedback counts with the mean of the trace's feedback. f
// is valid.
func (r *Reader) RateByMetadata(ctx context.Context, sc store.Scope, f *Filter, metadataKey string, of map[string]*Sample) (map[string]Sample, error) {
	only := *f
	traces := make([]string, 0, len(of))
	for trace := range of {
		traces = append(traces, trace)
	}
	if only.RestrictTraces(traces); only.Nothing {
		return nil, nil
	}
	leave, err := r.src.budget.admit(ctx, 2*modelWeight*int64(len(of)))
	if err != nil {
		return nil, err
	}
	defer leave()
	var sum *ratedValues
	err = retryMerged(func() error {
		sum = newRatedValues(metadataKey, of)
		q := &query{bucket: func(int64) int { return 0 }, collect: func() collector { return newRatedValues(metadataKey, of) }, merge: sum.merge}
		q.need.dims[segment.TraceID] = true
		q.need.metadata(metadataKey)
		return r.run(ctx, sc, &only, q)
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string]Sample, len(sum.values))
	for value, s := range sum.values {
		out[value] = *s
	}
	return out, nil
}

// ratedValues is the collector of RateByMetadata.
type ratedValues struct {
	key    string
	of     map[string]*Sample // by trace
	values map[string]*Sample
	t      *view
}

func newRatedValues(key string, of map[string]*Sample) *ratedValues {
	return &ratedValues{key: key, of: of, values: map[string]*Sample{}}
}

func (c *ratedValues) begin(t *view)                          { c.t = t }
func (c *ratedValues) users(*hyperloglog.Sketch, string, int) {}

func (c *ratedValues) row(i, _ int) {
	s, rated := c.of[c.t.Dims[segment.TraceID].At(i)]
	column := c.t.meta[c.key]
	if !rated || column.Code(i) == segment.Absent {
		return
	}
	c.at(column.At(i)).Add(s.Mean())
}

// at returns the sample of a value.
func (c *ratedValues) at(value string) *Sample {
	s := c.values[value]
	if s == nil {
		s = new(Sample)
		c.values[strings.Clone(value)] = s // a clone, to release the page
	}
	return s
}

func (c *ratedValues) merge(o collector) {
	for value, s := range o.(*ratedValues).values {
		c.at(value).merge(s)
	}
}
