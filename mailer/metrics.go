package mailer

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// noReply is the code of an answer that did not come or could not be read.
const noReply = 0

// replyCounter counts the answers of the relay. Codes outside the closed set of a phase are
// counted as "other", so that a relay cannot make labels up.
type replyCounter struct {
	vec   *prometheus.CounterVec
	known map[phase]map[int]prometheus.Counter
	other map[phase]prometheus.Counter
}

func newReplyCounter(registerer prometheus.Registerer) (*replyCounter, error) {
	c := &replyCounter{
		vec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nudged_smtp_replies_total",
			Help: "Answers of the mail relay by phase of the conversation; code none: no readable answer came.",
		}, []string{"phase", "code"}),
		known: make(map[phase]map[int]prometheus.Counter),
		other: make(map[phase]prometheus.Counter),
	}
	for phase, codes := range usualCodes() {
		c.other[phase] = c.vec.WithLabelValues(string(phase), "other")
		c.known[phase] = map[int]prometheus.Counter{noReply: c.vec.WithLabelValues(string(phase), "none")}
		for _, code := range codes {
			c.known[phase][code] = c.vec.WithLabelValues(string(phase), strconv.Itoa(code))
		}
	}
	if registerer == nil {
		return c, nil
	}
	return c, registerer.Register(c.vec)
}

// usualCodes are the codes that RFC 5321 section 4.3.2, RFC 3207 and RFC 4954 give to each phase.
func usualCodes() map[phase][]int {
	return map[phase][]int{
		phaseConnect:  {220, 421, 554},
		phaseEHLO:     {250, 421, 550},
		phaseSTARTTLS: {220, 421, 454},
		phaseAUTH:     {235, 421, 432, 454, 534, 535, 538},
		phaseMAIL:     {250, 421, 450, 451, 452, 503, 530, 550, 552, 553, 554},
		phaseRCPT:     {250, 251, 421, 450, 451, 452, 503, 530, 550, 551, 552, 553, 554},
		phaseDATA:     {354, 421, 450, 451, 452, 503, 554},
		phaseDot:      {250, 421, 450, 451, 452, 454, 550, 552, 554},
	}
}

func (c *replyCounter) count(p phase, code int) {
	counter, ok := c.known[p][code]
	if !ok {
		counter = c.other[p]
	}
	counter.Inc()
}
