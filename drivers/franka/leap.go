package franka

import (
	"fmt"
	"math"
	"time"
)

// A joint that is read again may be away from where it was by what the speeds of both readings explain in the time between
// them and leapSlack, and by leapTurn. More is no motion: two programs publish the joints of two arms under one name, or
// one was started anew. An arm that is held at such a reading is thrown there.
const (
	leapSlack = 50 * time.Millisecond // by which a network may bunch them
	leapTurn  = 0.05                  // rad
	leapWait  = time.Second           // for which readings are not believed after one
)

// watchLeap looks at joints before they become the newest.
func (b *reading) watchLeap(q, qd []float64, now time.Time) {
	gap := now.Sub(b.received)
	for i := range min(len(q), len(b.q)) {
		speed := math.Max(math.Abs(qd[i]), math.Abs(b.qd[i]))
		if math.Abs(q[i]-b.q[i]) > leapTurn+speed*(gap+leapSlack).Seconds() {
			b.leapt = now
			b.leap = fmt.Sprintf("the joint readings leap: joint %d is at %.3f rad and %v later at %.3f rad", i+1, b.q[i], gap.Round(time.Millisecond), q[i])
		}
	}
}

// doubtful says why readings are not believed; nil when they are.
func (b *reading) doubtful(now time.Time) *Condition {
	if b.leapt.IsZero() || now.Sub(b.leapt) > leapWait {
		return nil
	}
	return &Condition{
		Trouble: TroubleReadings, What: b.leap,
		Next: "two programs publish joints under one name, or the bring-up was started anew; look which, end what is not this arm's, and look at the arm before the next motion",
	}
}
