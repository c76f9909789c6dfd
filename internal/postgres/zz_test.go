package postgres_test
import ("testing";"time")
func TestZZ(t *testing.T){
 f:=newPlanFixture(t)
 _ = f
 for n,w:=range wakes { b:=time.Now(); f.schedule(w); t.Log(n,time.Since(b)) }
 b:=time.Now(); f.on("VACUUM ANALYZE"); t.Log("vac",time.Since(b))
}
