"""DQN on a little grid world in NumPy: replay buffer, target network copied by assign, gather of the taken actions, Huber loss (2.x)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, finish, report

ms.set_context(mode=MODE)


class QNet(nn.Cell):
    def __init__(self, states, actions):
        super().__init__()
        self.linear1 = nn.Dense(states, 24, weight_init="he_uniform")
        self.linear2 = nn.Dense(24, actions)
        self.relu = ops.ReLU()

    def construct(self, x):
        return self.linear2(self.relu(self.linear1(x)))


class Corridor:
    """Six cells in a row; the goal is the last. The state is a one-hot place and the time."""

    def reset(self):
        self.place, self.time = 0, 0
        return self.state()

    def state(self):
        state = np.zeros(7, np.float32)
        state[self.place], state[6] = 1, self.time / 12
        return state

    def step(self, action):
        self.time += 1
        self.place = min(5, max(0, self.place + (1 if action else -1)))
        return self.state(), float(self.place == 5) - 0.05, self.place == 5 or self.time == 12


class DQN:
    def __init__(self, batch_size, lr, gamma, target_replace_iter):
        self.eval_net, self.target_net = begin(QNet(7, 2), 1, 0.5), begin(QNet(7, 2), 2, 0.5)
        self.eval_net.update_parameters_name("eval."), self.target_net.update_parameters_name("target.")
        self.optimizer = nn.Adam(self.eval_net.trainable_params(), learning_rate=lr, eps=1e-5)
        self.loss_func = nn.HuberLoss()
        self.batch_size, self.gamma, self.replace = batch_size, gamma, target_replace_iter
        self.memory, self.learn_step = [], 0
        self.random = np.random.RandomState(5)
        self.grad_fn = ops.value_and_grad(self.forward, None, self.optimizer.parameters)

    def choose_action(self, x, epsilon=0.5):
        if self.random.uniform() < epsilon:
            return int(self.random.randint(2))
        return int(ops.argmax(self.eval_net(Tensor(x[None])), dim=1).asnumpy()[0])

    def forward(self, state, action, target):
        q_eval = self.eval_net(state).gather_elements(1, action)
        return self.loss_func(q_eval, target)

    def learn(self):
        if self.learn_step % self.replace == 0:
            for evaluated, target in zip(self.eval_net.get_parameters(), self.target_net.get_parameters()):
                ops.assign(target, evaluated)
        self.learn_step += 1
        chosen = [self.memory[i] for i in self.random.choice(len(self.memory), self.batch_size)]
        state, action, reward, after, done = (np.array(column, np.float32) for column in zip(*chosen))
        q_next = ops.stop_gradient(self.target_net(Tensor(after)))
        target = Tensor(reward).expand_dims(1) + self.gamma * q_next.max(axis=1, keepdims=True) * Tensor(1 - done).expand_dims(1)
        loss, grads = self.grad_fn(Tensor(state), Tensor(action.astype(np.int32)).expand_dims(1), target)
        self.optimizer(grads)
        return loss


agent, world = DQN(16, 0.01, 0.9, 4), Corridor()
for episode in range(6):
    state, total, done = world.reset(), 0.0, False
    while not done:
        action = agent.choose_action(state)
        after, reward, done = world.step(action)
        agent.memory.append((state, action, reward, after, done))
        state, total = after, total + reward
    if len(agent.memory) > 16:
        report(agent.learn(), total)
for _ in range(4):
    report(agent.learn())
finish(agent.eval_net, agent.target_net)
