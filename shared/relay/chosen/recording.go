package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// needsRecording refuses a form without a file where the target takes no address of a
// recording in its place.
func (ch *Chooser) needsRecording(op provider.Operation) error {
	if op != provider.AudioTranscription && op != provider.AudioTranslation || ch.Target.Body.Form == nil || !ch.Target.Body.Form.Whole() || ch.Target.Body.Form.HasFile("file") || ch.Target.To.Target.TakesRecordingURL() {
		return nil
	}
	return fault.Newf(fault.InvalidRequest, "file", "file is required: a file; %s takes no url in its place", ch.Target.To.Target.Provider.ID)
}
